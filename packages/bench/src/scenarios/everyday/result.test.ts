import { describe, expect, it } from 'vitest'
import type { ResultRow } from '../../results/result.js'
import { NOT_MEASURED } from '../../trials/row-scenario.js'
import { besideByHand } from './result.js'

function row(target: string, serverCpuUsPerDelivery?: number): ResultRow {
  const verdict = serverCpuUsPerDelivery === undefined ? 'failed' : 'ok'
  const judged = { verdict, verdictReason: null, repeatCount: 1, spread: {} } as const
  return { ...NOT_MEASURED, target, mode: 'clients', subscribers: 400, ...judged, serverCpuUsPerDelivery }
}

describe('the rows of everyday traffic', () => {
  it('have the broker as their mode, and the cost beside the server by hand over the same broker', () => {
    const rows = [row('webmq-native+redis', 30), row('by-hand+redis', 20), row('webmq-native', 12), row('by-hand', 8)]
    const result = besideByHand({ rows, runs: rows })
    expect(result.rows.map(({ target, mode, byHandRatio }) => [target, mode, byHandRatio])).toEqual([
      ['webmq-native', 'redis', 1.5],
      ['by-hand', 'redis', null],
      ['webmq-native', 'memory', 1.5],
      ['by-hand', 'memory', null],
    ])
    expect(result.runs.map(({ mode }) => mode)).toEqual(['redis', 'redis', 'memory', 'memory'])
    expect(result.notes).toEqual([])
  })

  it('have no ratio when one of both was not measured', () => {
    const rows = [row('webmq-native+nats', 30), row('by-hand+nats'), row('webmq-native+mesh', 30)]
    expect(besideByHand({ rows, runs: [] }).rows.map(({ byHandRatio }) => byHandRatio)).toEqual([null, null, null])
  })

  it('say what a mesh by hand is', () => {
    expect(besideByHand({ rows: [row('by-hand+mesh', 9)], runs: [] }).notes).toEqual([expect.stringMatching(/TCP/)])
  })
})
