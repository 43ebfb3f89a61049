# Completion of berth's verbs and options, for fish. What there is, the program says itself.
function __berth_verbs
    berth help 2>/dev/null | string match -rg '^  ([a-z]+)  +(.*)' | paste - - 2>/dev/null
end
function __berth_options
    set -l words (commandline -opc)
    test (count $words) -gt 1; and berth help $words[2] 2>/dev/null | string match -rg '^  (?:-[a-z], )?(--[a-z0-9-]+)'
end
complete -c berth -n __fish_use_subcommand -f -a '(__berth_verbs)'
complete -c berth -n 'not __fish_use_subcommand' -a '(__berth_options)'
