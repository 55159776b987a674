import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { numberAt, RespFrames } from './resp-frames.js'

const line = fc.stringMatching(/^[a-zA-Z0-9 ]{0,20}$/)
const simple = fc.oneof(
  line.map((text) => `+${text}\r\n`),
  line.map((text) => `-ERR ${text}\r\n`),
  fc.integer().map((number) => `:${number}\r\n`),
  fc.constantFrom('_\r\n', '#t\r\n', ',1.5\r\n', '(123\r\n', '$-1\r\n', '*-1\r\n', '*0\r\n', '$0\r\n\r\n'),
  fc.string({ maxLength: 60 }).map((text) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`),
  fc.constant('$8\r\n\r\n$5\r\n*2\r\n'),
)
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    simple,
    fc
      .tuple(fc.constantFrom('*', '>', '~'), fc.array(tie('value'), { maxLength: 4 }))
      .map(([type, values]) => `${type}${values.length}\r\n${values.join('')}`),
    fc
      .array(fc.tuple(tie('value'), tie('value')), { maxLength: 3 })
      .map((pairs) => `%${pairs.length}\r\n${pairs.flat().join('')}`),
    fc.tuple(simple, simple, tie('value')).map(([name, text, inner]) => `|1\r\n${name}${text}${inner}`),
  ),
}))

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return sorted.slice(1).map((to, index) => bytes.subarray(sorted[index], to))
}

describe('RespFrames', () => {
  it('finds every frame, however it was cut on its way', () => {
    fc.assert(
      fc.property(fc.array(value), fc.array(fc.nat(), { maxLength: 20 }), (values, places) => {
        const frames: string[] = []
        const parser = new RespFrames((bytes, start, end) => frames.push(bytes.toString('utf8', start, end)))
        for (const chunk of cut(Buffer.from(values.join('')), places)) if (chunk.length > 0) parser.write(chunk)
        expect(frames).toEqual(values)
      }),
    )
  })

  it('reads numbers', () => {
    fc.assert(
      fc.property(fc.integer(), (number) => {
        expect(numberAt(Buffer.from(`$${number}\r\n`), 1)).toBe(number)
      }),
    )
  })

  it('puts a large frame together once', () => {
    const size = 4 * 1_048_576
    const frame = Buffer.concat([Buffer.from(`>2\r\n$1\r\na\r\n$${size}\r\n`), Buffer.alloc(size), Buffer.from('\r\n')])
    const taken: [number, number][] = []
    const parser = new RespFrames((bytes, start, end) => taken.push([bytes.length, end - start]))
    for (let at = 0; at < frame.length; at += 16_384) parser.write(frame.subarray(at, at + 16_384))
    expect(taken).toEqual([[frame.length, frame.length]])
  })
})
