import { expect, it } from 'vitest'
import type { HistoryRow } from '../src/scenarios/history/result.js'
import { useBench } from './bench-run.js'

const { benchmark } = useBench()

/** The one play of `npm test` in which the load generator reads positions, replays and gaps by itself. */
it('plays users who get the history and what comes then, once and in order', async () => {
  const load = ['--users', '20', '--duration', '1', '--rounds', '1', '--sending-rate', '1']
  const { exitCode, output, record } = await benchmark('history', ...load, '--assert', 'joinMissCount=0')
  expect(exitCode, output).toBe(0)
  const [row] = (await record()).rows as readonly HistoryRow[]
  expect(row, output).toMatchObject({ target: 'webmq-native', subscribers: 20, verdict: 'ok' })
  expect(row).toMatchObject({ connectionRatio: 1, subscriptionRatio: 1, historyRatio: 1, unackedCount: 0 })
  expect(row).toMatchObject({ gapCount: 0, duplicateCount: 0, inversionCount: 0 })
  expect(row?.report.verified.joined.expected).toBeGreaterThan(0)
})
