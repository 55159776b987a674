import type { StreamInfo } from '@nats-io/jetstream'
import { epochOfText } from 'webmq-server/brokers'
import { nanosecondsOf } from './stream-message.js'

/** What the description of the stream says of the log. */
export interface StreamDescription {
  /** Changes when the stream is created again, and when it has lost its end: the name of the log, and its generation. */
  readonly epoch: string
  readonly name: string
  /** How often the stream has lost its end, or may have. */
  readonly generation: number
  /** The generation, as the description has it; '' for the first one. */
  readonly generationText: string
  /** Mark of the log: a hash of the rules that all nodes have had since the epoch began; '' when nobody knows. */
  readonly rules: string
  /** The run of the server in which a node has last said that the stream is whole; '' when none has. */
  readonly run: string
}

const LOG = /, log ([\w-]+)/
const GENERATION = /, generation (\d+)(\.[\w-]+)?/
const RULES = /, rules ([\w-]+)/
const RUN = /, run (\w+)$/
/** Of the run in which a generation began: a stream that loses its end twice in one way counts to the same number. */
const RUN_TAG_CHARS = 4

export function descriptionOf({ created, config }: StreamInfo): StreamDescription {
  const text = config.description ?? ''
  const name = LOG.exec(text)?.[1] ?? nameOfTime(created)
  const [generationText = '', generation = 0, tag = ''] = GENERATION.exec(text) ?? []
  return {
    epoch: name + (generationText === '' ? '' : `.${generation}${tag}`),
    name,
    generation: Number(generation),
    generationText,
    rules: RULES.exec(text)?.[1] ?? '',
    run: RUN.exec(text)?.[1] ?? '',
  }
}

/** @param prefix Of the subjects that the stream is for. */
export function describe(
  prefix: string,
  { name, generationText = '', rules, run }: Partial<StreamDescription> & Pick<StreamDescription, 'name'>,
): string {
  const about = `WebMQ: what was published under ${prefix}, log ${name}`
  return `${about}${generationText}${rules ? `, rules ${rules}` : ''}${run ? `, run ${run}` : ''}`
}

/** A generation that begins in a run of the server, for a description. */
export function generationTextOf(generation: number, run: string): string {
  return `, generation ${generation}.${epochOfText(run).slice(0, RUN_TAG_CHARS)}`
}

/**
 * Streams of earlier versions have no name: their time of creation, in nanoseconds, identifies them. It is no name for long:
 * nats-server 2.9.10 stores another time when the configuration changes after a restart, and tells that one from the next
 * restart on.
 */
function nameOfTime(created: string): string {
  const nanoseconds = nanosecondsOf(created)
  if (nanoseconds === undefined)
    throw new Error(`JetStream says that the stream was created at ${JSON.stringify(created)}`)
  return epochOfText(nanoseconds)
}
