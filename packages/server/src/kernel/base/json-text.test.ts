import { expect, it } from 'vitest'
import { encodeWithTexts, itemsOf, JsonText, membersOf } from './json-text.js'

it('gives the text of each member of an object, with all digits, names unescaped, and twice what is there twice', () => {
  const json = ' { "key" : "a\\"b\\\\" ,"n":1724442618569203714,\n"f":1.0, "\\u006bey":[1, {"x":"]}"} ] ,"w":null}\n'
  expect(membersOf(json)).toEqual([
    ['key', '"a\\"b\\\\"'],
    ['n', '1724442618569203714'],
    ['f', '1.0'],
    ['key', '[1, {"x":"]}"} ]'],
    ['w', 'null'],
  ])
  expect(membersOf(' {} ')).toEqual([])
  expect(membersOf('{"a":{}}')).toEqual([['a', '{}']])
})

it('gives the texts of the items of a list', () => {
  expect(itemsOf(' [ 1e400 , "," ,[ ] ,{"a":[2]},-0.0]')).toEqual(['1e400', '","', '[ ]', '{"a":[2]}', '-0.0'])
  expect(itemsOf('[ ]')).toEqual([])
})

it('reads what is nested deeply, and texts of nothing but escapes, in time that grows with the length', () => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
  const escapes = `"${'\\\\'.repeat(200_000)}${'\\"'.repeat(200_000)}"`
  expect(membersOf(`{"a":${deep},"b":${escapes}}`)).toEqual([
    ['a', deep],
    ['b', escapes],
  ])
})

it('comes to an end with what nobody has parsed', () => {
  expect(itemsOf('["no end')).toEqual(['"no end'])
  expect(() => membersOf('{"no end')).toThrow(SyntaxError)
})

it('writes texts as they are, and all else as JSON.stringify does', () => {
  const plain = { a: [1, undefined, 'ü"', { b: undefined, c: null }], d: new Date(0), e: true, '"': [] }
  expect(encodeWithTexts(plain)).toBe(JSON.stringify(plain))
  expect(encodeWithTexts({ list: [new JsonText('1.0')], one: new JsonText('[[ ]]') })).toBe(
    '{"list":[1.0],"one":[[ ]]}',
  )
})

it('agrees with JSON.parse about random JSON', () => {
  let seed = 7
  const below = (limit: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed % limit
  }
  const valueAt = (depth: number): unknown => {
    const kind = below(depth > 3 ? 4 : 6)
    if (kind === 0) return below(1_000_000) / 64 - 99
    if (kind === 1) return ['"', '\\', '\\"', '{[', ']},:', '', 'é\u2028'][below(7)]
    if (kind < 4) return [null, true, false][below(3)]
    const parts = Array.from({ length: below(4) }, () => valueAt(depth + 1))
    return kind === 4 ? parts : Object.fromEntries(parts.map((part, index) => [`"${index}\\`, part]))
  }
  for (let round = 0; round < 2_000; round++) {
    const value = { a: valueAt(0), b: [valueAt(0), valueAt(0)] }
    const json = JSON.stringify(value, undefined, [undefined, ' ', '\t\n'][round % 3])
    const members = membersOf(json)
    expect(Object.fromEntries(members.map(([name, text]) => [name, JSON.parse(text)]))).toEqual(value)
    expect(itemsOf(members[1]?.[1] ?? '').map((text) => JSON.parse(text))).toEqual(value.b)
  }
})
