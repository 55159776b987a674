import { withPayload } from '../../protocol/encode-field.js'

/** A protocol message on its way between a tab and the server: text, or bytes that nobody changes. */
export type Frame = string | ArrayBuffer

const LF = 0x0a

/** The fields of a frame's header [P-2.3]. The body is not looked at. */
export function fieldsOf(frame: Frame): readonly string[] {
  const header = typeof frame === 'string' ? frame.slice(0, endOf(frame)) : new Uint8Array(frame, 0, endOf(frame))
  return (typeof header === 'string' ? header : new TextDecoder().decode(header)).split(' ')
}

/** The same frame with another header. */
export function withFields(frame: Frame, fields: readonly string[]): Frame {
  const header = fields.join(' ')
  if (typeof frame === 'string') return header + frame.slice(endOf(frame))
  return (withPayload(header, new Uint8Array(frame, endOf(frame))) as Uint8Array<ArrayBuffer>).buffer
}

/** The same frame with another id, which is the second field. */
export function withId(frame: Frame, [verb = '', , ...rest]: readonly string[], id: string): Frame {
  return withFields(frame, [verb, id, ...rest])
}

/** The body of a text frame; empty without one. */
export function bodyOf(frame: Frame): string {
  return typeof frame === 'string' ? frame.slice(endOf(frame) + 1) : ''
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
  const [a, b] = [new Uint8Array(one, endOf(one)), new Uint8Array(other, endOf(other))]
  return a.length === b.length && a.every((byte, index) => byte === b[index])
}

/** Where the header ends. */
function endOf(frame: Frame): number {
  const end = typeof frame === 'string' ? frame.indexOf('\n') : new Uint8Array(frame).indexOf(LF)
  if (end >= 0) return end
  return typeof frame === 'string' ? frame.length : frame.byteLength
}
