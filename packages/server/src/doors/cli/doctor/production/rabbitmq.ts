import type { OutgoingHttpHeaders } from 'node:http'
import { ask, jsonOf } from '../health.js'
import { type DoctorTarget, type Finding, failure, ok, whyOf } from '../target.js'
import type { ProductionFolder } from './folder.js'
import { linesInForce } from './read-value.js'

const SERVER_COUNT = 3
/** From the port of clients to that of the management plugin: 5672 and 15672 by default. */
const MANAGEMENT_OFFSET = 10_000

/** What the management plugin says of a server; of one that is down, the first two. */
interface Server {
  readonly name: string
  readonly running: boolean
  readonly partitions?: readonly string[]
  readonly mem_limit?: number
  readonly mem_alarm?: boolean
  readonly disk_free_limit?: number
  readonly disk_free_alarm?: boolean
}
const COLUMNS = 'name,running,partitions,mem_limit,mem_alarm,disk_free_limit,disk_free_alarm'

/** Asks the first server that answers about all of them, and about the log. Only where they are on this machine. */
export async function checkRabbitmq(
  folder: ProductionFolder,
  at: (url: string) => DoctorTarget,
): Promise<readonly Finding[]> {
  const [, user, password, places] = /^amqp:\/\/([^:]+):([^@]+)@([\w.:,-]+)/.exec(folder.secret('broker')) ?? []
  if (folder.kind !== 'systemd' || places === undefined) return []
  const headers = { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` }
  const reasons = new Set<string>()
  for (const place of places.split(',')) {
    const target = at(`http://${place.replace(/\d+$/, (port) => String(Number(port) + MANAGEMENT_OFFSET))}`)
    try {
      const servers = await ask(target, `/api/nodes?columns=${COLUMNS}`, headers)
      if (servers.status === 401) {
        const advice = 'rabbitmqctl change_password: only the first start takes it from its file.'
        return [failure('rabbitmq', 'it refuses the password of secrets/broker', advice)]
      }
      if (servers.status !== 200) throw new Error(`status ${servers.status}`)
      const problems = problemsOf(JSON.parse(servers.body), folder)
      // A server that is down has no copy that answers.
      if (problems.length === 0) problems.push(...(await copyProblems(target, headers, folder)))
      if (problems.length === 0)
        return [ok('rabbitmq', `${SERVER_COUNT} servers with the log, and the limits of its file`)]
      return problems.map((problem) => failure('rabbitmq', ...problem))
    } catch (error) {
      reasons.add(whyOf(error))
    }
  }
  return [failure('rabbitmq', `no server answers (${[...reasons].join(', ')})`, 'Start them, and look at their logs.')]
}

type Problem = readonly [text: string, advice: string]

function problemsOf(servers: readonly Server[], { text }: ProductionFolder): Problem[] {
  const running = servers.filter((server) => server.running)
  const conf = linesInForce(text('rabbitmq.conf'))
  const limits = [
    ['mem_limit', sizeIn(conf, 'vm_memory_high_watermark')],
    ['disk_free_limit', sizeIn(conf, 'disk_free_limit')],
  ] as const
  const problems: Problem[] = []
  if (running.length < SERVER_COUNT)
    problems.push([`${running.length} of ${SERVER_COUNT} servers run as one cluster`, 'Start the others.'])
  for (const server of running) {
    const { name, partitions = [], mem_alarm: isMemoryFull, disk_free_alarm: isDiskFull } = server
    if (partitions.length > 0) problems.push([`${name} is apart from ${partitions.join(', ')}`, `Restart ${name}.`])
    if (isMemoryFull || isDiskFull)
      problems.push([`${name} takes no messages: its ${isMemoryFull ? 'memory' : 'disk'} is full`, 'Free some.'])
    for (const [limit, bytes] of limits)
      if (bytes !== undefined && server[limit] !== bytes)
        problems.push([
          `${name} runs with another ${limit}: ${server[limit]} instead of ${bytes}`,
          'Restart it with rabbitmq.conf; rabbitmqctl has changed it.',
        ])
  }
  return problems
}

/** A log that was made before the cluster was whole stays on the servers that it began with. */
async function copyProblems(
  target: DoctorTarget,
  headers: OutgoingHttpHeaders,
  { options }: ProductionFolder,
): Promise<readonly Problem[]> {
  const log = `${options?.brokerNamespace}.log`
  const { online } = jsonOf(await ask(target, `/api/queues/%2F/${encodeURIComponent(log)}?columns=online`, headers))
  const count = Array.isArray(online) ? online.length : 0
  if (count >= SERVER_COUNT) return []
  const advice = `rabbitmq-streams add_replica ${log} and the name of the server that has none.`
  return [[`${count} of ${SERVER_COUNT} servers have the log ${log}`, advice]]
}

/** `1GiB` as bytes; `undefined` in another unit. */
function sizeIn(conf: string, name: string): number | undefined {
  const [, count, unit] = new RegExp(`^${name}\\.absolute = (\\d+)(M|G)iB$`, 'm').exec(conf) ?? []
  return unit === undefined ? undefined : Number(count) * (unit === 'G' ? 2 ** 30 : 2 ** 20)
}
