# What `cmake --install` puts where, in three components, which scripts/packaging/deb.cmake makes
# packages of:
#   permit   the command, its man pages and completions, the systemd units, the server's example
#            configuration, alerts and a dashboard
#   dev      the C++ libraries and headers, for find_package(permit) and pkg-config
#   python   the Python client
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(packaging ${CMAKE_CURRENT_LIST_DIR})

# Whoever installs has built; building "all" first would build tests, too.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

install(TARGETS permit COMPONENT permit)
configure_file(${packaging}/install_rest.cmake.in generated/install_rest.cmake @ONLY)
install(SCRIPT ${CMAKE_BINARY_DIR}/generated/install_rest.cmake COMPONENT permit)
install(FILES scripts/monitoring/permit.rules.yml scripts/monitoring/dashboard.json
        DESTINATION ${CMAKE_INSTALL_DATADIR}/permit/monitoring COMPONENT permit)

# --- The libraries. Headers are included as in this tree: "permits/semaphore.h". ---

set(include_root ${CMAKE_INSTALL_INCLUDEDIR}/permit)
foreach(library protocol worker permits)
  set_target_properties(permit_${library} PROPERTIES EXPORT_NAME ${library})
  target_include_directories(permit_${library} INTERFACE $<INSTALL_INTERFACE:${include_root}>)
  target_compile_features(permit_${library} INTERFACE cxx_std_20)
  add_library(permit::${library} ALIAS permit_${library})
endforeach()
install(TARGETS permit_protocol permit_worker permit_permits EXPORT permit
        ARCHIVE COMPONENT dev)

# permit_public_headers(<variable> <header>...): these and what they include, again and again.
function(permit_public_headers variable)
  set(todo ${ARGN})
  set(public "")
  while(todo)
    list(POP_FRONT todo header)
    if(header IN_LIST public)
      continue()
    endif()
    list(APPEND public ${header})
    file(STRINGS ${CMAKE_SOURCE_DIR}/${header} lines REGEX "^#include \"")
    list(TRANSFORM lines REPLACE "^#include \"([^\"]+)\".*" "\\1")
    list(APPEND todo ${lines})
  endwhile()
  set(${variable} ${public} PARENT_SCOPE)
endfunction()

file(GLOB headers RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS permits/*.h worker/*.h)
list(FILTER headers EXCLUDE REGEX "test_environment")  # which needs the whole server
permit_public_headers(headers ${headers} orchestrator/protocol/version.h)
foreach(header ${headers})
  get_filename_component(directory ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${include_root}/${directory} COMPONENT dev)
endforeach()

set(cmake_directory ${CMAKE_INSTALL_LIBDIR}/cmake/permit)
install(EXPORT permit NAMESPACE permit:: FILE permitTargets.cmake DESTINATION ${cmake_directory}
        COMPONENT dev)
configure_package_config_file(${packaging}/permitConfig.cmake.in generated/permitConfig.cmake
  INSTALL_DESTINATION ${cmake_directory} NO_SET_AND_CHECK_MACRO)
# Before 1.0 any minor version may change what programs see.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/permitConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/permitConfig.cmake
              ${CMAKE_BINARY_DIR}/generated/permitConfigVersion.cmake
        DESTINATION ${cmake_directory} COMPONENT dev)

# From where permit.pc is to the prefix, so that a moved tree still works.
set(pkgconfig_directory ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_to_prefix /prefix/${pkgconfig_directory} /prefix)
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(${packaging}/permit.pc.in generated/permit.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/permit.pc DESTINATION ${pkgconfig_directory}
        COMPONENT dev)

# --- The Python client, where Debian's Python looks if the prefix is /usr. ---

install(FILES worker/python/permit.py DESTINATION lib/python3/dist-packages COMPONENT python)

include(${packaging}/deb.cmake)
