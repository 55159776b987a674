import { print, StepError } from './steps.mjs'

/** Releases that users have, for a kind of which the environment asks for no version. */
export const USUAL_VERSIONS = { rabbitmq: '4.0', redis: '8.0', nats: '2.10' }

/**
 * Makes sure that the tests can start every service they need, and prints the source of each. Build first.
 * @throws {StepError} with instructions when one is not available.
 */
export async function findServices() {
  const { obtainAll } = await import('webmq-services')
  try {
    await obtainAll(({ name, source, place, version = '' }) => {
      print(`  ${name.padEnd(10)} ${version.padEnd(8)} ${SOURCES[source]} ${place}`)
    }, chooseVersions())
  } catch (error) {
    if (error.name !== 'ServiceError') throw error
    throw new StepError(`The tests need services: ${error.message}`)
  }
}

/** Where a usual version cannot be had, says so; the tests then play on the system's. */
async function chooseVersions() {
  const { obtainService } = await import('webmq-services')
  for (const [kind, version] of Object.entries(USUAL_VERSIONS)) {
    const [url, variable] = ['URL', 'VERSION'].map((name) => `WEBMQ_TEST_${kind.toUpperCase()}_${name}`)
    if (process.env[url] || process.env[variable]) continue
    try {
      const { source } = await obtainService(kind, version)
      // Many tests wipe, damage or measure a broker, which only a program allows.
      if (source === 'container') print(`  ${kind} of the system, because ${version} is here as a container alone`)
      else process.env[variable] = version
    } catch (error) {
      if (error.name !== 'ServiceError') throw error
      print(`  ${kind} of the system, because ${error.message}`)
    }
  }
}

/** The source of a service, in words. */
const SOURCES = {
  url: 'given by URL:',
  binary: 'found:',
  container: 'in a container:',
  package: 'fetched:',
}
