/** An event of a stream; `data` is its JSON, parsed. */
export interface StreamEvent {
  readonly name: string
  readonly id: string | undefined
  readonly data: Record<string, unknown>
}

/** Characters of one event that may wait for its end: more than the largest payload in base64. */
const MAX_EVENT_CHARS = 1 << 27

/** Reads the events of a response (WHATWG HTML §9.2.6). Lines of this server end with LF. */
export async function* readEvents(body: ReadableStream<Uint8Array>, onBytes: () => void): AsyncGenerator<StreamEvent> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onBytes()
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n')
      rest = blocks.pop() ?? ''
      if (rest.length > MAX_EVENT_CHARS) throw new Error('too large')
      for (const block of blocks) {
        const event = parseEvent(block)
        if (event) yield event
      }
    }
  } finally {
    reader.cancel().catch(() => undefined)
  }
}

function parseEvent(block: string): StreamEvent | undefined {
  const fields: Record<string, string> = {}
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ')
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2)
  }
  if (fields.data === undefined) return undefined
  return { name: fields.event ?? 'message', id: fields.id, data: JSON.parse(fields.data) as Record<string, unknown> }
}
