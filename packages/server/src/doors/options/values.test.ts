import { describe, expect, it } from 'vitest'
import { describeDefault, formatQuantity, type OptionSpec } from './spec.js'
import { OPTIONS } from './table.js'
import { parseOption, parseQuantity } from './values.js'

function specOf(name: string): OptionSpec {
  const spec = OPTIONS.find((candidate) => candidate.name === name)
  if (spec === undefined) throw new Error(`no option ${name}`)
  return spec
}

describe('parseQuantity', () => {
  it.each([
    ['64', 'bytes', 64],
    ['64kb', 'bytes', 65_536],
    ['64KiB', 'bytes', 65_536],
    ['1.5 MiB', 'bytes', 1_572_864],
    ['2g', 'bytes', 2_147_483_648],
    ['250', 'ms', 250],
    ['250ms', 'ms', 250],
    ['25s', 'ms', 25_000],
    ['2m', 'ms', 120_000],
    ['1h', 's', 3600],
    ['7d', 's', 604_800],
    ['12', undefined, 12],
  ] as const)('reads %s as %s', (text, unit, value) => {
    expect(parseQuantity(text, unit)).toBe(value)
  })

  it.each([
    ['', 'bytes'],
    ['kb', 'bytes'],
    ['-1', 'bytes'],
    ['1e3', 'bytes'],
    ['0x10', 'bytes'],
    ['10s', 'bytes'],
    ['10kb', 'ms'],
    ['10ms', 's'],
    ['10s', undefined],
    ['1 2', 'ms'],
  ] as const)('does not take %j for %s', (text, unit) => {
    expect(parseQuantity(text, unit)).toBeUndefined()
  })
})

describe('formatQuantity', () => {
  it('writes what parseQuantity reads, for every default, minimum and maximum of the table', () => {
    const integers = OPTIONS.filter((spec) => spec.type === 'integer').map((spec): OptionSpec => spec)
    for (const spec of integers) {
      if (spec.type !== 'integer') continue
      for (const value of spec.range) {
        const text = formatQuantity(value, spec.unit).replaceAll(',', '')
        expect(parseQuantity(text, spec.unit), `${spec.name} ${text}`).toBe(value)
      }
    }
    expect(describeDefault(specOf('maxPayloadBytes'))).toBe('256KiB')
    expect(describeDefault(specOf('dedupeWindowMs'))).toBe('2m')
    expect(describeDefault(specOf('maxConnections'))).toBe('0')
  })
})

describe('parseOption', () => {
  it.each([
    ['on', true],
    ['TRUE', true],
    ['1', true],
    ['yes', true],
    ['off', false],
    ['false', false],
    ['0', false],
    ['no', false],
  ])('reads the switch %s', (text, value) => {
    expect(parseOption(specOf('demo'), text)).toBe(value)
  })

  it('does not guess what a word that is no switch means', () => {
    expect(() => parseOption(specOf('insecure'), 'maybe', 'WEBMQ_INSECURE')).toThrow(
      'WEBMQ_INSECURE: "maybe" is not true or false',
    )
  })

  it('splits lists at commas', () => {
    expect(parseOption(specOf('origins'), 'https://a.example, http://localhost:*,')).toEqual([
      'https://a.example',
      'http://localhost:*',
    ])
  })

  it('names the entry of a list that is wrong', () => {
    expect(() => parseOption(specOf('origins'), 'https://a.example,b.example')).toThrow('"b.example" is not')
  })

  it('cuts a long value that is wrong', () => {
    expect(() => parseOption(specOf('host'), 'x '.repeat(10_000))).toThrow(/^.{0,200}$/)
  })
})
