# Run by CPack when the files of each component are in place, before they become packages: what
# Debian asks of every package, and nobody else.
foreach(pair permit=permit dev=libpermit-dev python=python3-permit)
  string(REGEX MATCH "^[a-z]+" component ${pair})
  string(REGEX REPLACE "^[a-z]+=" "" package ${pair})
  set(root "${CPACK_TEMPORARY_DIRECTORY}/${component}")
  if(NOT IS_DIRECTORY "${root}/usr")
    message(FATAL_ERROR "component ${component} is not in ${root}")
  endif()
  set(documents "${root}/usr/share/doc/${package}")
  file(READ "${CPACK_PERMIT_SOURCE_DIR}/LICENSE" license)
  file(WRITE "${documents}/copyright" "${license}")
  string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE "${documents}/changelog.Debian"
"permit (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Built from its own tree.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
  execute_process(COMMAND gzip -9nf "${documents}/changelog.Debian" COMMAND_ERROR_IS_FATAL ANY)
  # CPack strips programs only.
  file(GLOB_RECURSE archives "${root}/usr/lib/*.a")
  if(archives)
    execute_process(COMMAND strip --strip-debug --enable-deterministic-archives ${archives}
                    COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
