# For start scripts, which source it: sets `workers` to what the arguments say by --workers, or to 1.
workers=1
for word in "$@"; do
  case $word in
    --workers=*) workers=${word#--workers=} ;;
  esac
done
