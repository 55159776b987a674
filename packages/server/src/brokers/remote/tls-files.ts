import { readFile } from 'node:fs/promises'
import { WebMQError } from 'webmq-client/protocol'

/**
 * The PEM files of a connection, by what they are for. Read at every connect, so that they can be renewed.
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
