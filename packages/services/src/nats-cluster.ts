import { freePort } from './free-port.js'
import { startNats } from './nats.js'
import type { Service, ServiceOptions } from './service.js'
import { ServiceError } from './service-error.js'
import { ServiceSet } from './service-set.js'
import { waitFor } from './wait-for.js'

/** NATS servers with JetStream that are one cluster. */
export class NatsCluster extends ServiceSet {
  /** Each can be killed and restarted. */
  readonly nodes: readonly Service[]
  /** Of their HTTP monitoring, in the same order. */
  readonly monitorPorts: readonly number[]

  constructor(nodes: readonly Service[], monitorPorts: readonly number[]) {
    super(nodes)
    this.nodes = nodes
    this.monitorPorts = monitorPorts
  }

  get urls(): readonly string[] {
    return this.nodes.map(({ url }) => url)
  }
}

const MIN_SERVERS = 3
const MAX_SERVERS = 7
const JOIN_TIMEOUT_MS = 30_000

/** Settings of a {@link NatsCluster}. */
export interface NatsClusterOptions extends Pick<ServiceOptions, 'dataParent' | 'version'> {
  /** 3 to 7, because two have no majority; default 3. */
  readonly servers?: number
}

/**
 * A private cluster of NATS servers whose JetStream has a leader.
 * @throws {ServiceError} when NATS is not available, or the servers do not find each other.
 */
export async function startNatsCluster(options: NatsClusterOptions = {}): Promise<NatsCluster> {
  const { servers = 3, ...place } = options
  if (!(servers >= MIN_SERVERS && servers <= MAX_SERVERS)) {
    throw new ServiceError(`a cluster has ${MIN_SERVERS} to ${MAX_SERVERS} servers, not ${servers}`)
  }
  const places = await Promise.all(Array.from({ length: servers }, async () => [await freePort(), await freePort()]))
  const routes = places.map(([port]) => `nats://127.0.0.1:${port}`)
  const starts = await Promise.allSettled(
    places.map(([, monitorPort], index) =>
      startNats({
        ...place,
        hasJetStream: true,
        args: [
          ...['--server_name', `server-${index + 1}`, '--cluster_name', 'webmq'],
          ...['--cluster', routes[index] ?? '', '--routes', routes.join(), '-m', String(monitorPort)],
        ],
      }),
    ),
  )
  const monitorPorts = places.map(([, monitorPort = 0]) => monitorPort)
  const started = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []))
  const cluster = new NatsCluster(started, monitorPorts)
  try {
    for (const start of starts) if (start.status === 'rejected') throw start.reason
    if (started.some(({ source }) => source === 'container')) {
      throw new ServiceError('several NATS servers that have to reach each other need nats-server on PATH')
    }
    await waitFor('the servers of the cluster to have a leader', JOIN_TIMEOUT_MS, async () => {
      const leaders = await Promise.all(monitorPorts.map(leaderOf))
      return leaders.every((leader) => leader !== '' && leader === leaders[0])
    })
  } catch (error) {
    await cluster.stop()
    throw error
  }
  return cluster
}

/** Name of the leader of JetStream, as a server knows it; empty: it knows none. */
async function leaderOf(monitorPort: number): Promise<string> {
  const { meta_cluster: meta } = (await (await fetch(`http://127.0.0.1:${monitorPort}/jsz`)).json()) as {
    readonly meta_cluster?: { readonly leader?: string }
  }
  return meta?.leader ?? ''
}
