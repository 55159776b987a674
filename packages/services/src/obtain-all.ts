import { type BalancerName, obtainBalancer } from './balancer-program.js'
import { obtainProgram, urlGiven } from './obtain-program.js'
import { obtainPrometheus } from './prometheus-program.js'
import type { ServiceKind, ServiceSource } from './service.js'
import { obtainToxiproxy } from './toxiproxy-program.js'
import { versionOf } from './versions/program-version.js'

/** The source of one of the programs that tests need. */
export interface ObtainedService {
  readonly name: ServiceKind | BalancerName | 'prometheus' | 'toxiproxy'
  readonly source: ServiceSource
  /** The program's path, the host of the URL, or the image of a container. */
  readonly place?: string
  /** Of a broker's program: `4.0.5`, `valkey-8.1.1`. */
  readonly version?: string
}

const BROKERS: readonly ServiceKind[] = ['rabbitmq', 'redis', 'nats']

/**
 * Makes sure that all services, the fault proxy and the load balancers can start. Installs or builds missing programs,
 * so that no test has to. Starts nothing.
 * @param report Called with each as soon as it is available.
 * @param versionsChosen Brokers wait for it: then the environment says which versions are asked for.
 * @throws {ServiceError} with instructions for the first one that is not available.
 */
export async function obtainAll(
  report: (obtained: ObtainedService) => void,
  versionsChosen: Promise<void> = Promise.resolve(),
): Promise<void> {
  // Go builds one of them while the package manager installs others, one at a time, and brokers are unpacked.
  await Promise.all([
    obtainToxiproxy().then(({ source, file }) => report({ name: 'toxiproxy', source, place: file })),
    obtainKinds(['postgres'], report).then(() => obtainBalancers(report)),
    versionsChosen.then(() => obtainKinds(BROKERS, report)),
  ])
}

/**
 * Makes sure that a private service can start.
 * @param version As in `ServiceOptions`.
 * @throws {ServiceError} with instructions when it cannot.
 */
export async function obtainService(kind: ServiceKind, version?: string): Promise<ObtainedService> {
  const origin = await obtainProgram(kind, { isPrivate: true, version })
  if (origin.source === 'url') throw new Error('a private service is never given by URL')
  if (origin.source === 'container') return { name: kind, source: origin.source, place: origin.image }
  const { source, file } = origin
  const number = await versionOf(kind, file)
  return { name: kind, source, place: file, ...(number !== undefined && { version: number }) }
}

async function obtainKinds(kinds: readonly ServiceKind[], report: (obtained: ObtainedService) => void): Promise<void> {
  for (const kind of kinds) {
    const url = urlGiven(kind)
    // Tests that kill or configure a service need a private one beside the given one.
    if (url !== undefined) report({ name: kind, source: 'url', place: new URL(url).host })
    report(await obtainService(kind))
  }
}

async function obtainBalancers(report: (obtained: ObtainedService) => void): Promise<void> {
  for (const name of ['haproxy', 'nginx'] as const) {
    const { source, file } = await obtainBalancer(name)
    report({ name, source, place: file })
  }
  report({ name: 'prometheus', source: 'binary', place: (await obtainPrometheus()).prometheus })
}
