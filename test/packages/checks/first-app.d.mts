export declare const firstAppChecks: readonly { readonly name: string }[]
