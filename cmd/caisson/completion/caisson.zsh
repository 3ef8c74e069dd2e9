#compdef caisson
# Completion of caisson for zsh. It asks "caisson __complete" for the words that may come next, and executes nothing else
# of the command line.

_caisson() {
    local -a given lines names shown
    local program raw line name flag longest=0 tab=$'\t' expl
    integer directive
    for raw in "${(@)words[1,CURRENT-1]}"; do
        [[ $raw == '~' || $raw == '~/'* ]] && raw=$HOME${raw#\~}
        # Variables are replaced, but nothing that could be a command.
        [[ $raw == *\$* && $raw != *[\'\`\\\(\[]* && $raw != *\$[^A-Za-z_]* ]] && raw=${(e)raw}
        given+=("${(Q)raw}")
    done
    program=$given[1]
    [[ $program == */* ]] || (( $+commands[$program] )) || program=caisson # for an alias
    [[ $PREFIX == -*=* ]] && flag=${PREFIX%%=*}=

    lines=("${(@f)$(command -- $program __complete "${(@)given[2,-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    [[ $lines[-1] == :<-> ]] || return 1
    directive=${lines[-1]#:}
    lines[-1]=()
    if (( directive & 16 )); then
        [[ -n $flag ]] && compset -P '*='
        _files -/
        return
    elif (( directive & 8 )); then # the lines are extensions
        [[ -n $flag ]] && compset -P '*='
        _files -g "*.(${(j:|:)lines})(-.)"
        return
    fi

    for line in "${(@)lines}"; do
        name=$flag${line%%$tab*}
        names+=("$name")
        (( $#name > longest )) && longest=$#name
    done
    for line in "${(@)lines}"; do
        name=$flag${line%%$tab*}
        [[ $line == *$tab* ]] && name="${(r:longest:)name}  -- ${line#*$tab}"
        shown+=("${name[1,COLUMNS-1]}")
    done
    local -a options=(-l -d shown)
    (( directive & 2 )) && options+=(-S '')
    (( $#names )) && _wanted caisson expl completion compadd "${(@)options}" -a names && return
    (( directive & 4 )) && return 1
    compset -P '*[=@]'
    _files
}

if [[ $funcstack[1] == _caisson ]]; then
    _caisson "$@"
else
    compdef _caisson caisson
fi
