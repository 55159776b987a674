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
 * A private cluster of NATS servers with a leader of JetStream, each of which knows all of them.
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
    // Two of three already have a leader, who refuses a log on three servers until the third has joined.
    await waitFor('the servers of the cluster to have one leader and know each other', JOIN_TIMEOUT_MS, async () => {
      const groups = await Promise.all(monitorPorts.map(groupOf))
      return groups.every(({ leader, size }) => leader !== '' && leader === groups[0]?.leader && size === servers)
    })
  } catch (error) {
    await cluster.stop()
    throw error
  }
  return cluster
}

/** JetStream's own group as a server knows it; the leader is empty when it knows none. */
async function groupOf(monitorPort: number): Promise<{ readonly leader: string; readonly size: number }> {
  const { meta_cluster: meta } = (await (await fetch(`http://127.0.0.1:${monitorPort}/jsz`)).json()) as {
    readonly meta_cluster?: { readonly leader?: string; readonly cluster_size?: number }
  }
  return { leader: meta?.leader ?? '', size: meta?.cluster_size ?? 0 }
}
