import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { importBeside } from '../missing-package.js'
import type { TlsFiles } from '../targets/messages.js'

/** The name that clients give to a server of ours. */
export const SERVER_NAME = 'localhost'

/** The certificate of one run, in files that only this user can read. */
export interface RunCertificate {
  readonly files: TlsFiles
  remove(): Promise<void>
}

/** @throws {RunError} outside of a checkout, where `webmq-services` is missing. */
export async function makeRunCertificate(): Promise<RunCertificate> {
  const { makeCertificate } = await importBeside(() => import('webmq-services'), '--tls')
  const { cert, key } = await makeCertificate({ names: [SERVER_NAME, '127.0.0.1'] })
  const directory = await mkdtemp(join(tmpdir(), 'webmq-bench-tls-'))
  const files = { certFile: join(directory, 'cert.pem'), keyFile: join(directory, 'key.pem') }
  await writeFile(files.certFile, cert)
  await writeFile(files.keyFile, key, { mode: 0o600 })
  return { files, remove: () => rm(directory, { recursive: true, force: true }) }
}
