// ignoreBOM: a key may begin with U+FEFF, which is a character like any other here.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text that the bytes stand for; `undefined` when they are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    // `fatal` has no other way to say it; a cause would add nothing.
    return undefined
  }
}
