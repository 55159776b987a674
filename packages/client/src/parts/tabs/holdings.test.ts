import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { ClientVerb } from '../../protocol/index.js'
import { holdingOf } from './holdings.js'

/** Whether a verb begins or ends something that lasts longer than its answer: always, for some operations, or never. */
const LASTS = {
  auth: 'never',
  listen: 'always',
  unlisten: 'always',
  publish: 'never',
  history: 'never',
  presence: 'some',
  request: 'never',
  reply: 'never',
  stream: 'never',
  read: 'never',
  ping: 'never',
} as const satisfies Record<ClientVerb, 'always' | 'some' | 'never'>

const vectors = JSON.parse(readFileSync(new URL('../../../vectors/client-messages.json', import.meta.url), 'utf8')) as {
  readonly valid: readonly { readonly text?: string; readonly decoded: { readonly verb: ClientVerb } }[]
}

it.each(Object.entries(LASTS))('knows what lasts of %s: %s', (verb, lasts) => {
  const names = vectors.valid
    .filter(({ text, decoded }) => text !== undefined && decoded.verb === verb)
    .map(({ text = '' }) => holdingOf(text.split('\n', 1).join().split(' ')))
  expect(names.length).toBeGreaterThan(0)
  if (lasts !== 'some') expect(new Set(names.map((name) => name !== undefined))).toEqual(new Set([lasts === 'always']))
})

it.each([
  ['listen 1 a.# since=e:1 meta', 'unlisten  a.#'],
  ['listen 1 a.# group=g respond', 'unlisten  a.# group=g respond'],
  ['unlisten 7 a.# group=g respond', 'unlisten  a.# group=g respond'],
  ['presence 1 room op=enter member=m', 'presence  room op=leave'],
  ['presence 1 room op=leave', 'presence  room op=leave'],
  ['presence 1 room op=watch', 'presence  room op=unwatch'],
  ['presence 1 room op=get', undefined],
])('names what %s begins or ends', (header, name) => {
  expect(holdingOf(header.split(' '))).toBe(name)
})
