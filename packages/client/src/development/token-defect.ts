/** Enough to recognize an error page, too little for a secret. */
const MAX_SHOWN_CHARS = 16

/**
 * Why the app's value cannot be a token.
 *
 * It shows the first characters, unless they may belong to a token: of an object in JSON those before a `:`, of a JWT or
 * of a text without a space inside none.
 */
export function tokenDefect(token: unknown): string {
  if (typeof token !== 'string')
    return `token() gave ${Array.isArray(token) ? 'an array' : `a ${typeof token}`}, not a string`
  const what = /^["{[]/.test(token)
    ? 'JSON'
    : token.startsWith('<')
      ? 'a page'
      : /\s/.test(token)
        ? 'text with a space or a newline'
        : 'text that is too long, or not ASCII'
  const [shown = ''] = /^[^:]*/.exec(token.slice(0, MAX_SHOWN_CHARS)) ?? []
  const isSecret = /eyJ/.test(shown) || !/^[{<]|\S\s+\S/.test(token)
  const start = isSecret ? '' : `, starting with ${JSON.stringify(shown)}`
  return `token() gave ${what}${start}; does it check \`response.ok\`?`
}
