import { execFile } from 'node:child_process'
import { realpath } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { ServiceKind } from '../service.js'
import { ServiceError } from '../service-error.js'

const ANSWER_TIMEOUT_MS = 10_000
const NUMBER = /v?=?(\d+\.\d+(?:\.\d+)*)/

/**
 * The number of a broker's release: `4.0.5`; of a Valkey `valkey-8.1.1`. `undefined` when the program does not tell.
 * @throws {ServiceError} when the program does not run.
 */
export async function versionOf(kind: ServiceKind, file: string): Promise<string | undefined> {
  if (kind === 'postgres') return undefined
  // RabbitMQ would start for it; each release has a folder with its number.
  const text =
    kind === 'rabbitmq' ? (/rabbitmq_server-([\d.]+)/.exec(await realpath(file))?.[1] ?? '') : await ask(file)
  const number = NUMBER.exec(text)?.[1]
  return number !== undefined && /^valkey/i.test(text) ? `valkey-${number}` : number
}

async function ask(file: string): Promise<string> {
  try {
    return (await promisify(execFile)(file, ['--version'], { timeout: ANSWER_TIMEOUT_MS })).stdout
  } catch (cause) {
    throw new ServiceError(`${file} --version: ${String(cause).slice(-500)}`, cause)
  }
}
