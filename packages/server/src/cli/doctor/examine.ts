import { checkName, checkPort } from './address.js'
import type { Finding } from './finding.js'
import { checkHealth } from './health.js'
import { checkOpenFiles, isHere } from './machine.js'
import { checkTalk } from './talk.js'
import type { DoctorTarget } from './target.js'
import { checkTls } from './tls.js'
import { checkClaims } from './token.js'
import { checkOrigin, checkUpgrade } from './upgrade.js'

/** Examines the way to a server from the name to the protocol. Ends at the first layer that does not work. */
export async function* examine(target: DoctorTarget): AsyncGenerator<Finding> {
  const { isSecure, origin, token } = target
  if (token !== undefined) yield* checkClaims(token)
  const [name, addresses] = await checkName(target)
  yield name
  if (name.status === 'fail') return
  const port = await checkPort(target, addresses)
  yield port
  if (port.status === 'fail') return
  let isTrusted = true
  if (isSecure) {
    const tls = await checkTls(target)
    yield* tls.findings
    if (!tls.isSpoken) return
    isTrusted = tls.isTrusted
  }
  const upgrade = await checkUpgrade(target)
  yield* upgrade
  const isOpen = upgrade.every(({ status }) => status !== 'fail')
  if (isOpen && origin !== undefined) yield await checkOrigin(target, origin)
  if (isOpen) yield* checkTalk(target, isTrusted)
  yield* await checkHealth(target)
  if (isHere(addresses)) yield await checkOpenFiles(target)
}
