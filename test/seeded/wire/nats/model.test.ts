import { afterAll, beforeEach, expect, vi } from 'vitest'

/** The suites that the real server passes, with the model in its place. */
vi.mock('webmq-services', async (original) => {
  const { startModelNats } = await import('./service.js')
  const shared = startModelNats({ hasJetStream: true })
  return {
    ...(await original<typeof import('webmq-services')>()),
    startNats: startModelNats,
    sharedService: () => shared,
  }
})

/** What the model leaves out, by the name of the test. */
const LEFT_OUT: ReadonlyMap<string, string> = new Map([
  ['logs in with an nkey, whose file is read at every connect', 'the library signs; the model has no nkeys'],
  ['logs in with a credentials file', 'the library signs; the model has no accounts'],
  ['encrypts, and trusts only whom it should', 'TLS is below the wire that the model speaks'],
  [
    'leaves a server that is about to stop, and tells of the gap once it is back',
    'a model is no process that takes signals',
  ],
  ['is cut off by the server when it does not read, and tells of the gap', 'a link takes any number of bytes'],
  ['is cut off, and then has everything that the stream has kept', 'a link takes any number of bytes'],
])
const met = new Set<string>()

beforeEach(({ task, skip }) => {
  const reason = LEFT_OUT.get(task.name)
  if (reason === undefined) return
  met.add(task.name)
  skip(reason)
})

afterAll(() => expect([...met].sort()).toEqual([...LEFT_OUT.keys()].sort()))

await import('../../../../packages/server/test/brokers/nats-broker.test.js')
await import('../../../../packages/server/test/brokers/nats-log.test.js')
