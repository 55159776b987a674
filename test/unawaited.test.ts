import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

// One message ended the process: a promise of the server that nobody waited for was rejected. `void` hides that from the linter,
// which finds all others (`noFloatingPromises`).

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** Promises that nobody waits for, by the call that gives them, and why none of them rejects. What may reject gets a handler instead, and no row. */
const NEVER_REJECT: Readonly<Record<string, string>> = {
  'adapters/brokers/mesh/dialers.ts: this.#resolve': 'catches and logs a name that cannot be looked up',
  'broker-nats/connect.ts: connecting.catch': 'is caught',
  'broker-nats/link.ts: this.#watch': 'catches what the library throws, and loses the link',
  'broker-nats/link.ts: connection.closed': 'the library resolves with the error',
  'broker-redis/log-link.ts: this.#askWhetherWritable': 'catches what Redis answers',
  'broker-redis/pair.ts: ended.then': 'the end of a connection is a value',
  'broker-redis/publisher.ts: this.#command': 'a pipeline: `exec` gives the errors',
  'broker-redis/subscriber.ts: this.#send': 'is caught',
  'broker-redis/subscriptions.ts: this.#narrow': 'whether the pattern is bound is a value; unbinding is caught',
  'adapters/brokers/remote/broker.ts: this.#replica?.confirmDuplicate': 'an arrival resolves, whatever comes',
  'features/hooks/hook-calls.ts: this.#chains.deliver.ask':
    'is immediate: it throws to its caller, and returns no promise',
  'features/operators/cluster.ts: nodes.openTable': 'a topic is bound again until it is, or the node stops',
  'features/operators/cluster.ts: nodes.openTopic': 'as the table',
  'features/streams/stops.ts: stopping.then': 'all are settled',
  'outbox-postgres/outbox.ts: measure': 'is caught',
  'kernel/node/node.ts: this.#warnOfLog': 'catches and logs what the broker says',
  'features/nodes/log-agreement.ts: log.dispute': 'a link that fails is replaced',
  'features/nodes/log-agreement.ts: this.#context.log.dispute': 'as above',
  'features/nodes/nodes.ts: this.#join': 'waits for topics, which never fail, and for times',
  'features/nodes/nodes.ts: this.#meeting.begin': 'waits for conditions, which hold or end',
  'features/nodes/nodes.ts: this.openTopic': 'a topic is bound again until it is, or the node stops',
  'features/nodes/part-sender.ts: this.#serve': 'catches and reports',
  'features/presence/occupancy/occupancy.ts: this.#table.open': 'as a topic',
  'features/presence/occupancy/teller.ts: this.#run': 'catches what the backend and the broker throw',
  'features/presence/presence.ts: this.#table.open': 'as a topic',
  'features/queue-groups/hand-over.ts: this.#groups.whenCurrent': 'has a timeout, and never fails',
  'features/queue-groups/local-member.ts: this.#handle': 'catches what the handler throws',
  'features/queue-groups/queue-groups.ts: this.#table.open': 'as a topic',
  'features/queue-groups/verbs.ts: reply.then': 'a reply that does not come is a value',
  'kernel/session/dispatcher.ts: pending.finally': 'what a hook throws is answered before',
  'kernel/session/dispatcher.ts: settled.finally': 'what a handler throws is answered before',
  'features/streams/writer.ts: this.#broken': 'its write is caught',
  'features/streams/writer.ts: this.#pump': 'what is refused rejects the appends',
}

/** The server's own, and those of its brokers and its outbox, whose names begin with the package. */
const SOURCES = ['server', 'broker-nats', 'broker-rabbitmq', 'broker-redis', 'outbox-postgres'].map(
  (name) => `packages/${name}/src/`,
)
const nameOf = (file: string) =>
  file.replace(/^packages\/(?:server|([\w-]+))\/src\//, (_, name) => (name ? `${name}/` : ''))
const UNAWAITED = /(?:^\s*|=> |\) |else )void ([\w#(].*)$/
/** The rejection of an async function that an emitter or a timer calls is nobody's. */
const ASYNC_HANDLER =
  /\b(?:on|once|addListener|addEventListener)\(\s*'[^']*',\s*async\b|\bset(?:Timeout|Interval|Immediate)\(\s*async\b/

function unawaitedIn(file: string, text: string): string[] {
  return text.split('\n').flatMap((line) => {
    const [, call] = UNAWAITED.exec(line) ?? []
    // These give no promise.
    if (call === undefined || /^(?:terminal\.stdout\.write|readAnswer|response\.once|socket\.on)\(/.test(call))
      return []
    return [`${file}: ${call.split('(')[0]}`]
  })
}

describe('a promise of the server that nobody waits for', () => {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...SOURCES], {
    cwd: ROOT,
    encoding: 'utf8',
  })
    .trim()
    .split('\n')
    .filter((file) => /(?<!\.test)\.ts$/.test(file) && existsSync(ROOT + file))
  const read = (file: string) => readFileSync(ROOT + file, 'utf8')

  it('is one that never rejects', () => {
    expect(files.length).toBeGreaterThan(300)
    expect(unawaitedIn('a.ts', '    void foo()\n  const f = () => void this.#bar(1)')).toHaveLength(2)
    const found = files.flatMap((file) => unawaitedIn(nameOf(file), read(file)))
    expect([...new Set(found)].sort()).toEqual(Object.keys(NEVER_REJECT).sort())
  })

  it('is not that of an async function which an emitter or a timer calls', () => {
    expect("socket.on('close', async () => {").toMatch(ASYNC_HANDLER)
    expect(files.filter((file) => ASYNC_HANDLER.test(read(file)))).toEqual([])
  })
})
