const STRING_OR_COMMENT = /"(?:[^"\\]|\\[\s\S])*"|\/\/[^\n\r]*|\/\*[\s\S]*?\*\//g
const STRING_OR_LAST_COMMA = /"(?:[^"\\]|\\[\s\S])*"|(?<![{[,]\s*),(?=\s*[}\]])/g

/**
 * JSON without the comments and trailing commas of JSONC, so that lines of a config file can be switched on and off.
 * They become spaces: the places in errors of `JSON.parse` stay those of the file.
 */
export function withoutComments(text: string): string {
  return text.replace(STRING_OR_COMMENT, blankUnlessString).replace(STRING_OR_LAST_COMMA, blankUnlessString)
}

function blankUnlessString(token: string): string {
  return token.startsWith('"') ? token : token.replace(/[^\n\r]/g, ' ')
}
