import './virtual-time.js'
import { expect, it, vi } from 'vitest'
import type { SeededBrokerName } from './brokers.js'
import { Network } from './network.js'
import { playSeed } from './play.js'

vi.mock('ws', async () => ({ WebSocket: (await import('./network.js')).VirtualSocket }))
vi.mock('../checker/link.js', () => import('./virtual-link.js'))

it('plays one', async () => {
  const broker = (process.env.B ?? 'model') as SeededBrokerName
  await playSeed(1, broker)
  const note = Network.prototype.note
  if (process.env.N)
    Network.prototype.note = function (d, w) {
      const [from, to] = (process.env.N ?? '').split('-').map(Number)
      if (performance.now() >= (from ?? 0) && performance.now() < (to ?? 0))
        console.log(
          'NOTE',
          performance.now(),
          d,
          JSON.stringify(typeof w === 'string' ? w : Buffer.from(w).toString('latin1')).slice(0, 400),
        )
      note.call(this, d, w)
    }
  const { record, violations } = await playSeed(Number(process.env.S), broker)
  console.log(record.faults.map((f) => `${f.fromMs}-${f.untilMs} ${f.name}`).join('\n'))
  for (const v of violations) console.log(JSON.stringify(v))
  const owner = process.env.O ?? violations[0]?.owner
  for (const l of record.listeners) if (l.name === owner) for (const e of l.events) console.log(JSON.stringify(e))
  for (const c of record.connections)
    if (c.owner === owner || process.env.C)
      console.log(JSON.stringify({ ...c, requests: process.env.C ? c.requests : c.requests.length }))
  if (process.env.P)
    for (const p of record.publishers)
      for (const m of p.messages) console.log(p.name, m.id, m.key, JSON.stringify(m.attempts))
  expect(1).toBe(1)
})
