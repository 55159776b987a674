import { type Codes, PANES } from './messages.js'

/** Longer links are neither made nor read: mail and chat programs cut them. */
const MAX_LENGTH = 8_000

/** The code as text for the fragment of a URL; `undefined` if it is too long. */
export function toFragment(codes: Codes): string | undefined {
  const bytes = new TextEncoder().encode(JSON.stringify(PANES.map((name) => codes[name])))
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
  const fragment = `#code=${text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`
  return fragment.length <= MAX_LENGTH ? fragment : undefined
}

/** The code of a fragment; `undefined` if it has none, `'unreadable'` if it is cut, too long or something else. */
export function fromFragment(fragment: string): Codes | 'unreadable' | undefined {
  if (!fragment.startsWith('#code=')) return undefined
  if (fragment.length > MAX_LENGTH) return 'unreadable'
  try {
    const text = atob(fragment.slice('#code='.length).replaceAll('-', '+').replaceAll('_', '/'))
    const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0))
    const [listen, publish] = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as readonly unknown[]
    return typeof listen === 'string' && typeof publish === 'string' ? { listen, publish } : 'unreadable'
  } catch {
    return 'unreadable'
  }
}
