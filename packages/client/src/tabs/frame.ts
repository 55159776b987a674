/** A protocol message on its way between a tab and the server: text, or bytes that nobody changes. */
export type Frame = string | ArrayBuffer

const LF = 0x0a

/** The fields of a frame's header [P-2.3]. The body is not looked at. */
export function fieldsOf(frame: Frame): readonly string[] {
  if (typeof frame === 'string') {
    const end = frame.indexOf('\n')
    return (end < 0 ? frame : frame.slice(0, end)).split(' ')
  }
  const bytes = new Uint8Array(frame)
  const end = bytes.indexOf(LF)
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end)).split(' ')
}

/** The same frame with another header. */
export function withFields(frame: Frame, fields: readonly string[]): Frame {
  const header = fields.join(' ')
  if (typeof frame === 'string') {
    const end = frame.indexOf('\n')
    return end < 0 ? header : header + frame.slice(end)
  }
  const bytes = new Uint8Array(frame)
  const end = bytes.indexOf(LF)
  const body = end < 0 ? bytes.subarray(0, 0) : bytes.subarray(end)
  const head = new TextEncoder().encode(header)
  const joined = new Uint8Array(head.length + body.length)
  joined.set(head)
  joined.set(body, head.length)
  return joined.buffer
}

/** The body of a text frame; empty without one. */
export function bodyOf(frame: Frame): string {
  if (typeof frame !== 'string') return ''
  const end = frame.indexOf('\n')
  return end < 0 ? '' : frame.slice(end + 1)
}

/** Memory that a frame takes while it waits: text has two bytes per unit. */
export function bytesOf(frame: Frame): number {
  return typeof frame === 'string' ? frame.length * 2 : frame.byteLength
}

/** The payload of two frames is the same. Cost: O(length) if they are equally long. */
export function isSameBody(one: Frame, other: Frame): boolean {
  if (typeof one === 'string' || typeof other === 'string') {
    return typeof one === typeof other && bodyOf(one) === bodyOf(other)
  }
  const [a, b] = [one, other].map((frame) => {
    const bytes = new Uint8Array(frame)
    return bytes.subarray(bytes.indexOf(LF))
  }) as [Uint8Array, Uint8Array]
  return a.length === b.length && a.every((byte, index) => byte === b[index])
}
