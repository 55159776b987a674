import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { deferred } from 'webmq-server/brokers'
import { QueueEmptied } from './queue-emptied.js'

const PREFETCH_COUNT = 10

/** A queue that is asked, by the counts that it answers with; the last one stays. */
function queueOf(...counts: readonly number[]) {
  let lookCount = 0
  const look = async () => ({ messageCount: counts[Math.min(lookCount++, counts.length - 1)] ?? 0 })
  const emptied = new QueueEmptied(look, PREFETCH_COUNT)
  const wait = async () => {
    const made = deferred()
    emptied.wait(made)
    await made.promise
    return lookCount
  }
  return { emptied, wait }
}

describe('a wait until the queue of a node has been empty', () => {
  it('is over behind what was on its way when the queue was empty', async () => {
    expect(await queueOf(0).wait()).toBe(2)
    expect(await queueOf(5, 3, 0, 7).wait()).toBe(4)
  })

  it('shares its questions with others, and is over with none that was asked before it', async () => {
    const { wait } = queueOf(0)
    expect(await Promise.all([wait(), wait(), wait()])).toEqual([2, 4, 4])
  })

  it('is over when as many messages have come, though the broker takes others again', async () => {
    const { emptied, wait } = queueOf(5)
    const over = wait()
    await setTimeout(10)
    emptied.takenCount = 5 + PREFETCH_COUNT
    expect(await over).toBeGreaterThan(2)
  })
})
