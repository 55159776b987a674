import { expect, it, onTestFinished, vi } from 'vitest'
import { logged, startNode, text } from '../../../../packages/server/test/brokers/nats-node.js'
import { serveWire } from '../serve.js'
import type { Work } from './core.js'
import { NatsModel } from './model.js'

const NEVER_MS = 60_000
const isOf = (payload: string, body: string) => Buffer.from(payload, 'base64').toString().endsWith(body)

/*
 * Symptom: a message stood in the log behind later ones of its publisher. Cause: JetStream had dropped it in silence, as it
 * does without a leader, and the node sent it again when its link was lost.
 */
it.each([
  ['when it has answered a later one', undefined],
  ['when the link is lost, and the log has brought a later one', 'acknowledge'],
  ['when the link is lost before the log brings a later one', 'deliver'],
] as const)('refuses what JetStream has dropped in silence %s', async (_, held: Work | undefined) => {
  let heldNow: Work | undefined
  const model = new NatsModel({ delayMs: (work) => (work === heldNow ? NEVER_MS : 0) })
  const served = await serveWire(model)
  onTestFinished(() => served.close())
  const { broker, sink } = await startNode({ broker: `nats://127.0.0.1:${served.port}`, brokerHeartbeatMs: 2_000 })
  const publish = async (body: string) => {
    try {
      await broker.publish(text('a', body))
      return 'accepted'
    } catch (error) {
      return (error as { readonly code: string }).code
    }
  }
  await publish('one')
  heldNow = held
  model.jetStream = 'silent'
  const dropped = publish('two')
  // The server has read both.
  await broker.publish(text('$unlogged', 'core'))
  model.jetStream = 'here'
  const later = publish('three')
  await vi.waitFor(() =>
    expect(model.snapshot()[0]?.stream.messages.some(([, , , , payload]) => isOf(payload, 'three'))).toBe(true),
  )
  if (held === 'acknowledge') expect(await later).toBe('accepted')
  if (held !== undefined) {
    heldNow = undefined
    model.kill(0)
    model.start()
  }
  expect(await dropped).toBe('E_BROKER_UNAVAILABLE')
  expect(await later).toBe('accepted')
  await vi.waitFor(() => expect(sink.statuses.at(-1)).toBe('up'))
  await publish('end')
  expect(await logged(broker)).toEqual(['one', 'three', 'end'])
})
