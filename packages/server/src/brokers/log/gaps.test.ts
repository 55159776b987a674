import { expect, it } from 'vitest'
import { retaining } from 'webmq-conformance'
import { HistoryRules } from '../../ports/history-rules.js'
import { LostOffsets } from './gaps.js'
import { HistoryLog } from './history-log.js'

it('joins ranges that meet, and counts everything before the oldest that it knows as lost', () => {
  const lost = new LostOffsets()
  lost.add(10, 20)
  lost.add(20, 30)
  expect([10, 11, 20, 29, 30].map((offset) => lost.has(offset))).toEqual([false, true, true, true, false])
  for (let index = 0; index < 2_000; index++) lost.add(100 + 10 * index, 105 + 10 * index)
  expect([5, 10, 100].map((offset) => lost.has(offset))).toEqual([true, true, true])
  expect([20_090, 20_092, 20_096].map((offset) => lost.has(offset))).toEqual([false, true, false])
})

// A client that was given messages that the broker then lost has values that nobody else has. The log may have moved on.
it('is a gap for the state of somebody who was given what was lost, however far the log has moved on', async () => {
  const history = { history: new HistoryRules([{ pattern: '#', maxMessages: 5, maxAgeMs: undefined }]) }
  const log = new HistoryLog(retaining({ ...history, historyMaxMessages: 5, historyMaxBytes: 10_000 }, '#'))
  const value = Uint8Array.of(1)
  log.restart('e')
  for (const key of ['a', 'b', 'c']) log.append(key, value, true)
  log.fence(100, Date.now(), true)
  for (let index = 0; index < 20; index++) log.append('d', value, true)
  const read = (offset: number) => log.read({ isState: true, since: log.positionAt(offset) }, ['#'])
  expect(await read(50)).toMatchObject({ gap: 'history-expired', messages: [] })
  const result = await read(2)
  expect(result.gap).toBeUndefined()
  expect(result.messages.map(({ key }) => key)).toEqual(['c', 'd'])
})
