# Writes OUTPUT, a .cpp with permit::http::built_in_assets(): the bytes of each file, the same through
# gzip where that is shorter, and a hash. All modules are in main.js. Run by the build:
# cmake -DDIRECTORY=... -DFILES=index.html|pages/pools.js -DOUTPUT=... -P embed_assets.cmake
include(${CMAKE_CURRENT_LIST_DIR}/join_modules.cmake)
string(REPLACE "|" ";" files "${FILES}")
set(modules ${files})
list(FILTER modules INCLUDE REGEX "\\.js$")
list(FILTER files EXCLUDE REGEX "\\.js$")
set(joined "${OUTPUT}.modules")
if(modules)
  join_modules("${DIRECTORY}" "${modules}" "${joined}/main.js")
  file(WRITE "${joined}/stream_worker.js" "import \"./main.js\";\n")
  list(APPEND files main.js stream_worker.js)
endif()
find_program(zopfli zopfli)  # makes what gzip reads a twentieth smaller
set(compress gzip -9nc)
if(zopfli)
  set(compress "${zopfli}" -c)
endif()
set(arrays "")
set(rows "")
set(number 0)

# Sets `array` to the initialiser of the file's bytes; a NUL follows them, so that it is never empty.
function(read_array file array)
  file(READ "${file}" hex HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  set(${array} "{${bytes}'\\0'}" PARENT_SCOPE)
endfunction()

foreach(path IN LISTS files)
  set(file "${DIRECTORY}/${path}")
  if(path MATCHES "\\.js$")
    set(file "${joined}/${path}")
  endif()
  set(zipped "${OUTPUT}.gz")
  execute_process(COMMAND ${compress} "${file}" OUTPUT_FILE "${zipped}" COMMAND_ERROR_IS_FATAL ANY)
  file(SHA256 "${file}" hash)
  string(SUBSTRING "${hash}" 0 16 hash)
  file(SIZE "${file}" size)
  file(SIZE "${zipped}" zipped_size)
  read_array("${file}" array)
  string(APPEND arrays "constexpr char plain_${number}[] = ${array};\n")
  set(gzip "{}")
  if(zipped_size LESS size)
    read_array("${zipped}" array)
    string(APPEND arrays "constexpr char gzip_${number}[] = ${array};\n")
    set(gzip "{gzip_${number}, ${zipped_size}}")
  endif()
  string(APPEND rows "    {\"${path}\", {plain_${number}, ${size}}, ${gzip}, \"${hash}\"},\n")
  math(EXPR number "${number} + 1")
  file(REMOVE "${zipped}")
endforeach()

set(all "{}")
if(rows)
  string(APPEND arrays "constexpr Asset assets[] = {\n${rows}};\n")
  set(all "assets")
endif()
file(WRITE "${OUTPUT}" "#include \"orchestrator/http/assets.h\"

namespace permit::http {

namespace {
${arrays}}  // namespace

std::span<const Asset> built_in_assets() { return ${all}; }

}  // namespace permit::http
")
