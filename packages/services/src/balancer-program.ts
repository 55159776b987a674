import { type DebianProgram, obtainDebianProgram } from './debian-program.js'

export type BalancerName = 'haproxy' | 'nginx'

/** What the program is in, without modules that nobody here needs. */
const PACKAGES: Readonly<Record<BalancerName, string>> = { haproxy: 'haproxy', nginx: 'nginx-light' }

/**
 * The program of a load balancer: on PATH, else the Debian package.
 * @throws {ServiceError} with instructions when there is neither.
 */
export function obtainBalancer(name: BalancerName): Promise<DebianProgram> {
  return obtainDebianProgram(name, PACKAGES[name], 'a load balancer needs')
}
