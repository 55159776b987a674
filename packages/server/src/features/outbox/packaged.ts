import { loadPackage, type OptionalPackage, unfitPackage } from '../../kernel/base/load-library.js'
import { OUTBOX_VERSION, type OutboxDriver } from './driver.js'

/** The compiler must not look for it, and bundlers must find it: a literal that is said to be any text. */
const POSTGRES: OptionalPackage = {
  packageName: 'webmq-outbox-postgres',
  exportName: 'postgresOutbox',
  importPackage: () => import('webmq-outbox-postgres' as string),
}

/**
 * The driver of `--outbox postgres://…`.
 * @param outboxPackage Replaceable for tests.
 * @throws {WebMQError} `E_BROKER_MISSING`, with the command that installs its package, or the version of it that belongs to
 *   this server.
 */
export async function loadOutboxDriver(outboxPackage = POSTGRES): Promise<OutboxDriver> {
  const { packageName, exportName } = outboxPackage
  const driver = (await loadPackage(outboxPackage, 'the database outbox (--outbox)')) as OutboxDriver | undefined
  if (driver === undefined) throw unfitPackage(packageName, `${packageName} does not export ${exportName}`)
  const version: number = driver.outboxVersion
  if (version === OUTBOX_VERSION) return driver
  const versions = `version ${version} of webmq-server/outbox, and this server has version ${OUTBOX_VERSION}`
  throw unfitPackage(packageName, `${packageName} is written for ${versions}`)
}
