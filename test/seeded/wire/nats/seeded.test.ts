import { expect, it, vi } from 'vitest'
import { playSeed } from './play.js'

vi.mock('ws', async () => ({ WebSocket: (await import('../../network.js')).VirtualSocket }))

it('plays', async () => {
  const first = Number(process.env.WEBMQ_TEST_SEED ?? 1)
  const count = Number(process.env.COUNT ?? 3)
  const beganMs = performance.now()
  for (let seed = first; seed < first + count; seed++) {
    const { record, violations, transcript, log } = await playSeed(seed)
    const faults = record.faults.map(({ name, fromMs }) => `${Math.round(fromMs)} ms ${name}`).join(', ')
    console.log(seed, transcript.count, transcript.digest.slice(0, 8), violations.length, faults)
    console.log(record.listeners.map(({ events }) => events.length).join(), record.publishers.map(({ messages }) => messages.length).join())
    if (process.env.LOG) console.log(log.join('\n'))
    for (const { atMs, rule, text } of violations.slice(0, 4)) console.log(`   ${Math.round(atMs)} ${rule} ${text}`)
  }
  console.log((performance.now() - beganMs) / count, 'ms each')
  expect(1).toBe(1)
})
