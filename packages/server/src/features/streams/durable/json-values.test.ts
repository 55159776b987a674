import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { linesOf, listOf } from './json-values.js'

const lines = (text: string) => linesOf(Buffer.from(text)).toString()

describe('linesOf', () => {
  it.each([
    ['{"a": 1}', '{"a": 1}\n'],
    [' [1, [2,3], {"b":[4]}] ', '1\n[2,3]\n{"b":[4]}\n'],
    ['[12345678901234567890, 1.0]', '12345678901234567890\n1.0\n'],
    ['["],[", "\\"", "\\\\"]', '"],["\n"\\""\n"\\\\"\n'],
    ['{\n"a":\r\n1}', '{ "a": 1}\n'],
    ['[]', ''],
    [' [ ] ', ''],
    ['[[]]', '[]\n'],
    ['null', 'null\n'],
  ])('makes lines of %s', (text, expected) => {
    expect(lines(text)).toBe(expected)
  })

  it.each(['', '{', '[1,]', '"\udc00', '[1] [2]'])('refuses %j', (text) => {
    expect(() => lines(text)).toThrow('no JSON')
    expect(() => linesOf(Buffer.from([0x22, 0xff, 0x22]))).toThrow('no JSON')
  })

  it('loses nothing: the list of the lines is the list', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.constantFrom(undefined, 2, '\t'), (values, indent) => {
        const body = Buffer.from(JSON.stringify(values, null, indent))
        expect(JSON.parse(listOf(linesOf(body)))).toEqual(JSON.parse(JSON.stringify(values)))
      }),
    )
  })
})
