# Defines join_modules(): the page's modules in one, as the binary serves them. That is a third of the
# bytes of many small files, in one request. The modules stay what they are: a browser runs them as they
# stand in apps/web (--ui-asset-path), and so do the page's tests. In return they keep to one form, and
# joining stops at another one:
#
#   import {a, b as c} from "./x.js";                      before all else
#   export function f() …                                  at a line's begin: function, const or class
#   import("./pages/x.js")                                 in modules of the top directory
#
# Each becomes a function that runs once, when it is first asked for, and returns what it exports.
# Comments go, and what lines are indented by; so a text in backquotes ends on the line where it begins.

function(join_modules directory paths output)
  set(all "const $modules = {\n")
  foreach(path IN LISTS paths)
    join_module("${directory}" "${path}" text)
    string(APPEND all "\"${path}\"() {${text}},\n")
  endforeach()
  file(WRITE "${output}" "${all}};
const $loaded = {};
const $load = (name) => ($loaded[name] ??= $modules[name]());
const $later = async (name) => $load(name);
$load(typeof document === \"undefined\" ? \"stream_worker.js\" : \"main.js\");
")
endfunction()

function(join_module directory path result)
  file(READ "${directory}/${path}" text)
  string(PREPEND text "\n")
  string(REGEX REPLACE "\n[ \t]*//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "  // [^\n\"'`]*\n" "\n" text "${text}")
  string(REGEX REPLACE "\n[ \t\n]+" "\n" text "${text}")
  string(REGEX MATCHALL "\n[^\n`]*(`[^\n`]*`[^\n`]*)*`[^\n`]*\n" unended "${text}")
  if(unended)
    message(FATAL_ERROR "${path}: a text in backquotes goes over several lines:${unended}")
  endif()

  cmake_path(GET path PARENT_PATH folder)
  string(REGEX MATCHALL "\nimport {[^}]*} from \"[^\"\n]+\"" imports "${text}")
  foreach(import IN LISTS imports)
    string(REGEX MATCH "{[^}]*}" names "${import}")
    string(REPLACE " as " ": " names "${names}")
    string(REGEX MATCH "\"[^\"]+\"" from "${import}")
    string(REPLACE "\"" "" from "${from}")
    cmake_path(SET from NORMALIZE "${folder}/${from}")
    string(REGEX REPLACE "^/" "" from "${from}")
    string(REPLACE "${import};" "\nconst ${names} = $load(\"${from}\");" text "${text}")
  endforeach()
  if(NOT folder)
    string(REGEX REPLACE "import\\(\"\\./([^\"\n]+)\"\\)" "$later(\"\\1\")" text "${text}")
  endif()

  string(REGEX MATCHALL "\nexport (async )?(function|const|class) [A-Za-z0-9_]+" exports "${text}")
  list(TRANSFORM exports REPLACE ".* " "")
  list(JOIN exports ", " exports)
  string(REGEX REPLACE "\nexport ((async )?(function|const|class) )" "\n\\1" text "${text}")
  foreach(other "\n(import|export)[^\n]*" "[^a-z_.]import\\([^\n]*")
    if(text MATCHES "${other}")
      message(FATAL_ERROR "${path}: write this as other modules do, see join_modules.cmake:${CMAKE_MATCH_0}")
    endif()
  endforeach()
  set(${result} "${text}return {${exports}};\n" PARENT_SCOPE)
endfunction()
