import { withArticle } from '../../protocol/with-article.js'

/** Enough to recognize an error page, too little for a secret. */
const MAX_SHOWN_CHARS = 16

/**
 * Why the app's value cannot be a token.
 *
 * It shows the first characters, unless they may belong to a token: of an object in JSON those before a `:`, of a JWT or
 * of a text without a space inside none.
 */
export function tokenDefect(token: unknown): string {
  if (token === undefined || token === '') {
    return `token() gave ${token === '' ? 'an empty text' : token}: return the token, or null for an anonymous connection`
  }
  if (typeof token !== 'string') return `token() gave ${kindOf(token)}, not a string${adviceFor(token)}`
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

function kindOf(token: unknown): string {
  const name = (token as object | null)?.constructor?.name
  return withArticle(typeof token === 'object' && name !== 'Object' && name ? name : typeof token)
}

/** Objects that apps return most often instead of a token. By their members: those of another frame have other classes. */
function adviceFor(token: unknown): string {
  const { ok, text, access_token, token: inner } = token as Partial<Record<string, unknown>>
  if (typeof ok === 'boolean' && typeof text === 'function') return ': check `response.ok` and return `response.text()`'
  if (typeof inner === 'string') return ': return its member `token`'
  return typeof access_token === 'string' ? ': return its member `access_token`' : ''
}
