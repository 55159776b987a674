import { expect, it } from 'vitest'
import { retaining } from 'webmq-conformance'
import { HistoryRules } from '../../../kernel/ports/history-rules.js'
import { HistoryLog } from './history-log.js'

// A client that was given messages that the broker then lost has values that nobody else has. The log may have moved on.
it('is a gap for the state of somebody who was given what was lost, however far the log has moved on', async () => {
  const history = { history: new HistoryRules([{ pattern: '#', maxMessages: 5, maxAgeMs: undefined }]) }
  const log = new HistoryLog(retaining({ ...history, historyMaxMessages: 5, historyMaxBytes: 10_000 }, '#'))
  const value = Uint8Array.of(1)
  log.restart('e')
  for (const key of ['a', 'b', 'c']) log.append({ key, payload: value, isBinary: true })
  for (let index = 0; index < 20; index++) log.append({ key: 'd', payload: value, isBinary: true })
  const since = log.positionAt(2)
  const read = (fingerprint: number) => log.read({ isState: true, since: { ...since, fingerprint } }, ['#'])
  expect(await read(since.fingerprint + 1)).toMatchObject({ gap: 'broker-lost', messages: [] })
  const result = await read(since.fingerprint)
  expect(result.gap).toBeUndefined()
  expect(result.messages.map(({ key }) => key)).toEqual(['c', 'd'])
})

it('is a gap for whoever stands where nodes may have missed what was not logged, or before, and for a time until then', async () => {
  const history = new HistoryRules([{ pattern: '#', maxMessages: 9, maxAgeMs: undefined }])
  const log = new HistoryLog({ history, historyMaxMessages: 9, historyMaxBytes: 10_000 })
  log.restart('e')
  const value = Uint8Array.of(1)
  const [first, second] = [
    log.append({ key: 'a', payload: value, isBinary: true }),
    log.append({ key: 'a', payload: value, isBinary: true }),
  ]
  log.dispute(true)
  expect(log.doubtedUpTo).toEqual({ epoch: 'e', offset: second.offset })
  log.dispute(false)
  expect(log.doubt(first)).toBe(false)
  expect(log.doubt({ epoch: 'another', offset: 9 })).toBe(false)
  const third = log.append({ key: 'a', payload: value, isBinary: true })
  const read = async (since: typeof first) => {
    const { gap, messages } = await log.read({ since }, ['#'])
    return [gap, messages.length]
  }
  expect(await read(first)).toEqual(['rules-differ', 2])
  expect(await read(second)).toEqual(['rules-differ', 1])
  expect(await read(third)).toEqual([undefined, 0])
  expect((await log.read({ rewindMs: 60_000 }, ['#'])).gap).toBe('rules-differ')
  expect((await log.read({ last: 3 }, ['#'])).gap).toBeUndefined()
  expect(log.doubt(third)).toBe(true)
  expect(await read(third)).toEqual(['rules-differ', 0])
  // The log may restart within its epoch.
  log.restart('e', third.offset, third.fingerprint)
  expect(await read(third)).toEqual(['rules-differ', 0])
})

it('is a gap for everybody while nodes log other keys', async () => {
  const history = new HistoryRules([{ pattern: '#', maxMessages: 9, maxAgeMs: undefined }])
  const log = new HistoryLog({ history, historyMaxMessages: 9, historyMaxBytes: 10_000 })
  log.restart('e')
  log.dispute(true)
  const last = log.append({ key: 'a', payload: Uint8Array.of(1), isBinary: true })
  expect((await log.read({ since: last }, ['#'])).gap).toBe('rules-differ')
  expect((await log.read({ rewindMs: 1_000 }, ['#'])).gap).toBe('rules-differ')
  log.dispute(false)
  const next = log.append({ key: 'a', payload: Uint8Array.of(1), isBinary: true })
  expect((await log.read({ since: last }, ['#'])).gap).toBe('rules-differ')
  expect((await log.read({ since: next }, ['#'])).gap).toBeUndefined()
})

it('gives the state page by page while nodes log other keys', async () => {
  const history = { history: new HistoryRules([{ pattern: '#', maxMessages: 9, maxAgeMs: undefined }]) }
  const log = new HistoryLog(retaining({ ...history, historyMaxMessages: 9, historyMaxBytes: 10_000 }, '#'))
  log.restart('e')
  for (const key of ['a', 'b', 'c']) log.append({ key, payload: Uint8Array.of(1), isBinary: true })
  log.dispute(true)
  const page = await log.read({ isState: true, limit: 2 }, ['#'])
  const next = await log.read({ isState: true, limit: 2, since: page.position }, ['#'])
  expect([page, next].flatMap(({ messages }) => messages.map(({ key }) => key))).toEqual(['a', 'b', 'c'])
  expect(next).toMatchObject({ isPartial: false })
  expect(next.gap).toBeUndefined()
})
