import { readFile } from 'node:fs/promises'
import { WebMQError } from 'webmq-client/protocol'

/**
 * Reads the PEM files of a connection. Called for every connection, so that files can be renewed.
 * @param files Paths by purpose, for example `ca`.
 * @throws {WebMQError} `E_BROKER_REFUSED` when one cannot be read.
 */
export async function readTlsFiles(files: Readonly<Record<string, string>>): Promise<Record<string, Buffer>> {
  const entries = Object.entries(files).map(async ([name, file]) => {
    try {
      return [name, await readFile(file)] as const
    } catch (cause) {
      throw new WebMQError('E_BROKER_REFUSED', { detail: `the file ${file} cannot be read`, cause })
    }
  })
  return Object.fromEntries(await Promise.all(entries))
}
