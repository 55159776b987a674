import { obtainHaproxy } from './haproxy-program.js'
import { obtainProgram, urlGiven } from './obtain-program.js'
import type { ServiceKind, ServiceSource } from './service.js'
import { obtainToxiproxy } from './toxiproxy-program.js'

/** Where one of the programs that tests need comes from. */
export interface ObtainedService {
  readonly name: ServiceKind | 'toxiproxy' | 'haproxy'
  readonly source: ServiceSource
  /** The program's path, or the host of the URL; nothing for a container. */
  readonly place?: string
}

const KINDS: readonly ServiceKind[] = ['rabbitmq', 'redis', 'nats']

/**
 * Makes sure that all services, the fault proxy and the load balancer can be started, and installs or builds what is
 * missing, so that no test has to. Starts nothing.
 * @param report Called with each as soon as it is there.
 * @throws {ServiceError} that says what to do for the first one that is not to be had.
 */
export async function obtainAll(report: (obtained: ObtainedService) => void): Promise<void> {
  // Go builds the one while the package manager, which does one thing at a time, installs the others.
  await Promise.all([
    obtainToxiproxy().then(({ source, file }) => report({ name: 'toxiproxy', source, place: file })),
    obtainPackages(report),
  ])
}

async function obtainPackages(report: (obtained: ObtainedService) => void): Promise<void> {
  for (const kind of KINDS) {
    const url = urlGiven(kind)
    // Tests that kill or configure a service need a private one beside the one that is given.
    if (url !== undefined) report({ name: kind, source: 'url', place: new URL(url).host })
    const origin = await obtainProgram(kind, { isPrivate: true })
    report({ name: kind, source: origin.source, ...('file' in origin ? { place: origin.file } : {}) })
  }
  const { source, file } = await obtainHaproxy()
  report({ name: 'haproxy', source, place: file })
}
