import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { TurnQueue } from './turn-queue.js'

it('starts tasks at once while the turn has room', async () => {
  const started: number[] = []
  const queue = new TurnQueue<number>(2, (task) => started.push(task))
  for (const task of [1, 2, 3]) queue.push(task)
  expect(started).toEqual([1, 2])
  await nextTurn()
  expect(started).toEqual([1, 2, 3])
})

it('starts the others in later turns, in order', async () => {
  const started: number[] = []
  const queue = new TurnQueue<number>(3, (task) => started.push(task))
  for (let task = 0; task < 100; task++) queue.push(task)
  for (let turn = 2; turn <= 34; turn++) {
    await nextTurn()
    expect(started.length).toBeLessThanOrEqual(3 * turn)
    if (turn === 5) queue.push(100)
  }
  while (queue.size > 0) await nextTurn()
  expect(started).toEqual(Array.from({ length: 101 }, (_, task) => task))
})

it('takes tasks that a task pushes', async () => {
  const started: string[] = []
  const queue = new TurnQueue<string>(1, (task) => {
    started.push(task)
    if (task === 'first') queue.push('pushed')
  })
  for (const task of ['first', 'second']) queue.push(task)
  while (queue.size > 0) await nextTurn()
  expect(started).toEqual(['first', 'pushed', 'second'])
})

it('forgets the oldest of too many', async () => {
  const started: number[] = []
  const queue = new TurnQueue<number>(1, (task) => started.push(task), { maxWaiting: 2 })
  for (const task of [1, 2, 3, 4]) queue.push(task)
  while (queue.size > 0) await nextTurn()
  expect(started).toEqual([1, 3, 4])
})

it('forgets what waits', async () => {
  const started: number[] = []
  const queue = new TurnQueue<number>(1, (task) => started.push(task))
  for (const task of [1, 2]) queue.push(task)
  queue.clear()
  await nextTurn()
  expect([started, queue.size]).toEqual([[1], 0])
})

it('starts more within a turn while they take little, with all that they begin', async () => {
  const started: string[] = []
  const fast = new TurnQueue<number>(1, (task) => started.push(`fast ${task}`), { turnMs: 1_000 })
  for (let task = 0; task < 20; task++) fast.push(task)
  await nextTurn()
  await nextTurn()
  expect(started).toHaveLength(20)
  started.length = 0
  const work = async (task: number) => {
    started.push(`slow ${task}`)
    await undefined
    const endMs = performance.now() + 6
    while (performance.now() < endMs) {
      // Uses the processor.
    }
  }
  const slow = new TurnQueue<number>(1, (task) => void work(task).catch(expect.unreachable), { turnMs: 5 })
  for (let task = 0; task < 5; task++) slow.push(task)
  await nextTurn()
  await nextTurn()
  expect(started.length).toBeLessThanOrEqual(3)
  while (slow.size > 0) await nextTurn()
  expect(started).toEqual([0, 1, 2, 3, 4].map((task) => `slow ${task}`))
})
