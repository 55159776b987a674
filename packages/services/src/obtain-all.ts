import { type BalancerName, obtainBalancer } from './balancer-program.js'
import { obtainProgram, urlGiven } from './obtain-program.js'
import type { ServiceKind, ServiceSource } from './service.js'
import { obtainToxiproxy } from './toxiproxy-program.js'

/** The source of one of the programs that tests need. */
export interface ObtainedService {
  readonly name: ServiceKind | BalancerName | 'toxiproxy'
  readonly source: ServiceSource
  /** The program's path, or the host of the URL; nothing for a container. */
  readonly place?: string
}

const KINDS: readonly ServiceKind[] = ['rabbitmq', 'redis', 'nats', 'postgres']

/**
 * Makes sure that all services, the fault proxy and the load balancers can start. Installs or builds missing programs,
 * so that no test has to. Starts nothing.
 * @param report Called with each as soon as it is available.
 * @throws {ServiceError} with instructions for the first one that is not available.
 */
export async function obtainAll(report: (obtained: ObtainedService) => void): Promise<void> {
  // Go builds one of them while the package manager installs the others, one at a time.
  await Promise.all([
    obtainToxiproxy().then(({ source, file }) => report({ name: 'toxiproxy', source, place: file })),
    obtainPackages(report),
  ])
}

async function obtainPackages(report: (obtained: ObtainedService) => void): Promise<void> {
  for (const kind of KINDS) {
    const url = urlGiven(kind)
    // Tests that kill or configure a service need a private one beside the given one.
    if (url !== undefined) report({ name: kind, source: 'url', place: new URL(url).host })
    const origin = await obtainProgram(kind, { isPrivate: true })
    report({ name: kind, source: origin.source, ...('file' in origin ? { place: origin.file } : {}) })
  }
  for (const name of ['haproxy', 'nginx'] as const) {
    const { source, file } = await obtainBalancer(name)
    report({ name, source, place: file })
  }
}
