import { obtainDebianProgram } from './debian-program.js'

/** The paths of both programs. */
export interface PrometheusPrograms {
  readonly prometheus: string
  readonly promtool: string
}

/**
 * Prometheus, and its checker of rules: on PATH, else the Debian package, which starts nothing.
 * @throws {ServiceError} with instructions when there is neither.
 */
export async function obtainPrometheus(): Promise<PrometheusPrograms> {
  const obtain = (name: string) => obtainDebianProgram(name, 'prometheus', 'tests of alerts need')
  const prometheus = await obtain('prometheus')
  const promtool = await obtain('promtool')
  return { prometheus: prometheus.file, promtool: promtool.file }
}
