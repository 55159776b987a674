/**
 * Collects the chunks of a stream.
 * @throws {Error} as soon as there are more than `maxBytes`; what `tooLarge` makes of the text.
 */
export async function limitedBytes(
  chunks: AsyncIterable<Uint8Array | string> | readonly never[],
  maxBytes: number,
  tooLarge: (text: string) => Error = Error,
): Promise<Buffer> {
  const parts: Buffer[] = []
  let byteCount = 0
  for await (const chunk of chunks) {
    const part = Buffer.from(chunk as Uint8Array)
    byteCount += part.length
    if (byteCount > maxBytes) throw tooLarge(`more than ${maxBytes} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts)
}
