# Debian packages of the components in scripts/packaging/install.cmake; scripts/package makes them.
# One package has both the command and the server, since they are one program. Its unit is not
# enabled on installing: most machines need the command only.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME permit)
set(PERMIT_DEB_MAINTAINER "The Permit authors <permit@permit.invalid>"
  CACHE STRING "Whom the Debian packages name as their maintainer")
set(CPACK_PACKAGE_CONTACT "${PERMIT_DEB_MAINTAINER}")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_COMPONENTS_ALL permit dev python)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # for /etc
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# A revision beside the version, so that two packages of one version can be told apart.
set(PERMIT_DEB_REVISION 1 CACHE STRING "Revision of the Debian packages")
set(CPACK_DEBIAN_PACKAGE_RELEASE ${PERMIT_DEB_REVISION})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PERMIT_SOURCE_DIR ${CMAKE_SOURCE_DIR})
set(CPACK_PRE_BUILD_SCRIPTS ${packaging}/deb_documents.cmake)

set(CPACK_DEBIAN_PERMIT_PACKAGE_NAME permit)
set(CPACK_DEBIAN_PERMIT_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PERMIT_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PERMIT_PACKAGE_CONTROL_EXTRA
  ${packaging}/conffiles ${packaging}/postinst ${packaging}/prerm ${packaging}/postrm)
# The first line of each is what lists show.
set(CPACK_COMPONENT_PERMIT_DESCRIPTION "permits for things there are few of
Permit hands out permits for things there are few of, such as GPUs, lab rigs
or jobs that may run only once at a time, and never loses one. A job asks for
a permit and gets a slot, or waits its turn in line.

This package has the command, which is also the server. To run the server:
systemctl enable --now permit")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libpermit-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libboost1.81-dev, nlohmann-json3-dev, libssl-dev")
set(CPACK_COMPONENT_DEV_DESCRIPTION "workflows that hold permits, in C++
Static libraries and headers for workers: workflows as C++20 coroutines whose
progress is on disk, activities, and permits for both. For CMake's
find_package(permit) and for pkg-config.")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-permit)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.9), python3:any")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
  ${packaging}/python/postinst ${packaging}/python/prerm)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "holds and activities for Python programs
The client of Permit for Python: a context manager and decorator that holds a
permit while a block runs, and a worker for activities. Standard library only.")

include(CPack)
