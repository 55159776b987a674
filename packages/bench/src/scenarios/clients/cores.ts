import { formatCount } from '../../report/format.js'
import type { CoresUsed } from '../../results/clients-report.js'

/** Above this share of busy cores whatever is ready to run waits for one. */
export const FULL_RATIO = 0.9
const LEAST_SHOWN = 0.005

/** Processor seconds within the window. */
export interface WindowCpu {
  /** Cores of the machine. */
  readonly cores: number
  readonly machine: number
  readonly generator: number
  readonly broker: number | null
}

/** @param seconds Length of the window. */
export function coresUsed(cpu: WindowCpu, serversCpuSeconds: number, seconds: number): CoresUsed {
  return {
    available: cpu.cores,
    busy: cpu.machine / seconds,
    generator: cpu.generator / seconds,
    servers: serversCpuSeconds / seconds,
    broker: cpu.broker === null ? null : cpu.broker / seconds,
  }
}

export function isMachineFull({ busy, available }: CoresUsed): boolean {
  return busy > FULL_RATIO * available
}

/** `1.97 of 2 cores were busy: generator 0.40, servers 1.30, broker 0.15, others 0.12`. */
export function coresText({ available, busy, generator, servers, broker }: CoresUsed): string {
  const others = busy - generator - servers - (broker ?? 0)
  const shares = Object.entries({ generator, servers, broker: broker ?? 0, others })
    .filter(([, cores]) => cores >= LEAST_SHOWN)
    .map(([name, cores]) => `${name} ${cores.toFixed(2)}`)
  return `${busy.toFixed(2)} of ${formatCount(available)} cores were busy: ${shares.join(', ')}`
}
