import type { ResultRecord } from '../results/result.js'
import { environmentFacts } from './environment.js'

/** Facts that may differ between results that compare: when, which code, and how each was called. */
const MAY_DIFFER = ['command', 'startedAt', 'commit', 'loadAverage', 'openFilesLimit']
/** Settings that decide which rows there are, not what a row says. */
const ROW_SETTINGS = ['targets', 'tiers', 'modes']
/** Runnable tasks per core before the run, from which on a machine was not quiet. */
const QUIET_LOAD_PER_CORE = 0.25

/** What differs between two results beside the code, one sentence each; nothing when they compare. */
export function compareEnvironments(before: ResultRecord, after: ResultRecord): string[] {
  if (before === after) return []
  const facts = environmentFacts(after)
  const differing = environmentFacts(before).flatMap(({ key, label, value }) => {
    const other = facts.find((fact) => fact.key === key)
    return MAY_DIFFER.includes(key) || other === undefined || other.value === value
      ? []
      : [`${label} differs: ${value} and ${other.value}.`]
  })
  const settings = Object.keys(before.config).flatMap((key) => {
    const values = [before.config[key], after.config[key]].map((value) => JSON.stringify(value) ?? 'none')
    return ROW_SETTINGS.includes(key) || values[0] === values[1]
      ? []
      : [`The setting ${key} differs: ${values.join(' and ')}.`]
  })
  const loads = [before, after].flatMap(({ machine }, index) =>
    machine.loadAverage > QUIET_LOAD_PER_CORE * machine.cores
      ? [`The machine was not quiet before the ${index === 0 ? 'first' : 'second'} run: load ${machine.loadAverage}.`]
      : [],
  )
  return [...differing, ...settings, ...loads]
}
