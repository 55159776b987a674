import { describe, expect, it } from 'vitest'
import { recordingLogger } from '../../../test/fake-server.js'
import {
  BROKER_GRACE_MS,
  BROKER_SHARE_MS,
  NODE_STOP_MS,
  NOTICES_STOP_MS,
  STOP_GRACE_MS,
  StopList,
} from './stop-list.js'

describe('StopList', () => {
  it('stops in the reverse order of the start, each part after the one before it', async () => {
    const { logger } = recordingLogger()
    const list = new StopList(logger)
    const calls: string[] = []
    list.add({ name: 'first', stop: () => calls.push('first') })
    list.add({
      name: 'second',
      stop: async () => {
        calls.push('second begins')
        await new Promise(setImmediate)
        calls.push('second ends')
      },
    })
    await list.stop()
    expect(calls).toEqual(['second begins', 'second ends', 'first'])
  })

  it('goes on after a part that fails, and names it in the log', async () => {
    const { logger, lines } = recordingLogger()
    const list = new StopList(logger)
    let stopped = 0
    list.add({ name: 'first', stop: () => stopped++ })
    list.add(
      { name: 'throws', stop: () => fail('now') },
      { name: 'rejects', stop: () => Promise.reject(new Error('later')) },
      { name: 'beside', stop: () => stopped++ },
    )
    await list.stop()
    expect(stopped).toBe(2)
    expect(lines.map(({ level, fields }) => [level, (fields as { part: string }).part])).toEqual([
      ['error', 'throws'],
      ['error', 'rejects'],
    ])
  })

  it('stops what was added while it stopped', async () => {
    const { logger } = recordingLogger()
    const list = new StopList(logger)
    let isStopped = false
    const late = {
      name: 'late',
      stop: () => {
        isStopped = true
      },
    }
    list.add({ name: 'first', stop: () => list.add(late) })
    await list.stop()
    expect(isStopped).toBe(true)
  })
})

describe('limits of a stop', () => {
  it('add up to less than the grace of the command line', () => {
    expect(NODE_STOP_MS + NOTICES_STOP_MS).toBeLessThan(STOP_GRACE_MS)
    expect(BROKER_GRACE_MS).toBeLessThan(BROKER_SHARE_MS)
    expect(BROKER_SHARE_MS).toBeLessThan(NODE_STOP_MS)
  })
})

function fail(message: string): never {
  throw new Error(message)
}
