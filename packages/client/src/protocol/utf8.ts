// ignoreBOM: a key may begin with U+FEFF, which is an ordinary character here.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes bytes; `undefined` if they are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    // `fatal` reports bad bytes only by throwing; a cause would add nothing.
    return undefined
  }
}
