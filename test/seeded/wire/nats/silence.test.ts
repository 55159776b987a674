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

// Symptom: a node stayed away for 30 s, though NATS was back. Cause: only the whole attempt to connect had a limit.
it('leaves a server that takes its connection and says nothing', async () => {
  const model = new NatsModel()
  let isMute = false
  const mute = { receive: () => undefined, closed: () => undefined }
  const served = await serveWire({
    port: model.port,
    connect: (link) => (isMute ? mute : model.connect(link)),
    kill: (lostCount) => model.kill(lostCount),
    start: () => model.start(),
  })
  onTestFinished(() => served.close())
  const { sink } = await startNode({ broker: `nats://127.0.0.1:${served.port}` })
  isMute = true
  model.kill(0)
  model.start()
  await vi.waitFor(() => expect(sink.statuses.at(-1)).toBe('down'))
  // It connects again within 200 ms.
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  isMute = false
  await vi.waitFor(() => expect(sink.statuses.at(-1)).toBe('up'), { timeout: 10_000 })
})
