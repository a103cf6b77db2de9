# Writes OUTPUT.h and OUTPUT.cpp, which hold the text of INPUT as NAMESPACE::CONSTANT.
# Run by the build: cmake -DINPUT=... -DOUTPUT=... -DNAMESPACE=... -DCONSTANT=... -P embed.cmake
file(READ "${INPUT}" text)
get_filename_component(stem "${OUTPUT}" NAME)

file(WRITE "${OUTPUT}.h" "#pragma once

namespace ${NAMESPACE} {
extern const char* const ${CONSTANT};
}  // namespace ${NAMESPACE}
")
file(WRITE "${OUTPUT}.cpp" "#include \"${stem}.h\"

namespace ${NAMESPACE} {
const char* const ${CONSTANT} = R\"~embedded~(${text})~embedded~\";
}  // namespace ${NAMESPACE}
")
