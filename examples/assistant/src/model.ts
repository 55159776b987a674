import { setTimeout as sleep } from 'node:timers/promises'

/** Time between two words, as of a model. */
const WORD_MS = Number(process.env.WORD_MS ?? 60)

const TEXT = `is a good question. 🤔 This model knows one answer only, and says it word by word, as models do.
While it speaks, open this page in another window, or on your phone: the answer is there from its first word on.
Reload the page, or cut the network: nothing is missing afterwards, and nothing comes twice. Each word is a message of
the log, and who comes late gets all of them as one text. Press Stop on any screen: the model stops, once.`

/** A model that is none: it says always the same, until it is stopped. */
export async function* words(question: string, signal: AbortSignal): AsyncGenerator<string, void> {
  for (const word of `“${question}” ${TEXT}`.split(/(?<= )/)) {
    if (signal.aborted) return
    yield word.replace('\n', ' ')
    await sleep(WORD_MS)
  }
}
